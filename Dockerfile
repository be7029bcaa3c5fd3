# The command batchwright and all that its stages need, to run or retrain a project that is mounted at /project:
# docker build --tag batchwright . && docker run --rm --volume "$PWD/../mine:/project" batchwright dvc repro
FROM python:3.11-slim
# wget: KubeRay asks with it whether a node is well. A mounted project belongs to somebody else, which git refuses.
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client wget \
  && rm -rf /var/lib/apt/lists/* && git config --system --add safe.directory '*'
WORKDIR /opt/batchwright
COPY . .
# For CPUs only: --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG PIP_EXTRA_INDEX_URL
RUN pip install --no-cache-dir --constraint requirements.lock ".[pipeline,s3]"
WORKDIR /project
CMD ["batchwright", "retrain"]
