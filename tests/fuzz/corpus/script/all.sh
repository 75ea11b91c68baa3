#!/bin/bash
#SBATCH --job-name=x -t 1-02:03 --gres=gpu:v100:2 -p debug
#BERTH --param lr=1,2 -a 0-3%1 --signal=B:USR1@60 # rest
#BERTH -d afterok:1:2 --begin now+1hour --mem 2G --export=A,B=c

echo
