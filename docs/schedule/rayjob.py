"""Reads a RayCronJob and writes the RayJob that it starts: ``python rayjob.py < kuberay.yaml``."""

import sys

import yaml

job = yaml.safe_load(sys.stdin)
yaml.safe_dump({**job, "kind": "RayJob", "spec": job["spec"]["jobTemplate"]}, sys.stdout, sort_keys=False)
