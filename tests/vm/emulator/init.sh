#!/bin/sh
# The first process of the guest: mounts what programs expect, runs /job, says how it ended, and resets the machine.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root LANG=C.UTF-8
export PYTHONPATH=/site PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
stty -F /dev/ttyS1 raw -echo
exec </dev/null >/dev/ttyS1 2>&1
sh /job
printf '\n@@exit %s@@\n' $?
exec >/dev/null 2>&1 # waits until all that was written has gone out
echo b > /proc/sysrq-trigger
