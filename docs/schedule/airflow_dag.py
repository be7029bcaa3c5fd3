"""For Airflow's folder of DAGs: retrains every night, and is skipped if there is nothing new."""

from datetime import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG("retrain", schedule="0 3 * * *", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1):
    command = ".venv/bin/batchwright retrain"
    BashOperator(task_id="retrain", bash_command=command, cwd="/srv/mine", append_env=True, skip_on_exit_code=3)
