"""Dagster's definitions: retrains every night; that there is nothing new is no failure."""

import subprocess

import dagster


@dagster.op
def retrain() -> None:
    code = subprocess.run([".venv/bin/batchwright", "retrain"], cwd="/srv/mine").returncode
    if code not in (0, 3):
        raise dagster.Failure("rejected" if code == 4 else "failed")


@dagster.job
def night() -> None:
    retrain()


nights = dagster.ScheduleDefinition(job=night, cron_schedule="0 3 * * *")
definitions = dagster.Definitions(jobs=[night], schedules=[nights])
