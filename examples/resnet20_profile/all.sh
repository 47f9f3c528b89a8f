#!/bin/sh
# All figures of the study, then the page: all.sh WEIGHTS DATA [TRIALS [FOLDER [PAGE]]]
# What needs a GPU is left out where there is none.
set -u
weights=${1:?weights as .npz or .pth}
data=${2:?folder with cifar-10-batches-py}
trials=${3:-10000}
folder=${4:-runs/resnet20}
page=${5:-runs/resnet20.md}
python=${PYTHON:-python}

for mode in cpu cuda first-conv-cuda cuda-graph; do
    for profile in time memory; do
        [ "$mode $profile" = "cuda-graph memory" ] && continue
        "$python" -m examples.resnet20_profile --mode "$mode" --profile "$profile" \
            --trials "$trials" --weights "$weights" --data "$data" \
            --output "$folder/${mode}_$profile"
        status=$?
        # 2: it said why it cannot run here
        [ $status -eq 0 ] || [ $status -eq 2 ] || exit $status
    done
done
exec "$python" -m examples.resnet20_profile.report "$folder" --output "$page"
