#!/bin/sh
#SBATCH --job-name=moons
#SBATCH --gpus=1
#SBATCH --time=10:00
#BERTH --class=be
#BERTH --grace=30s
#BERTH --pattern=step ([0-9]+) loss ([0-9.]+)
#
# A batch script, as people have them: berth submit examples/job.sh
# sbatch reads its own lines and takes the others for comments.

echo "on ${CUDA_VISIBLE_DEVICES:-no GPU}, attempt ${BERTH_ATTEMPT:-0}"

# exec, so that the signal of a preemption reaches the training and not this shell.
exec python3 examples/train_plain.py --steps "${STEPS:-2000}" --sleep "${SLEEP:-0.003}"
