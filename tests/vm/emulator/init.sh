#!/bin/sh
# The first process of the guest: mounts what programs expect, runs /job, says how it ended, and resets the machine.
# The job removes /run/silent at each of its steps; if it does not for $silence_s to twice as many seconds, it hangs. The
# kernel passes that variable on, since it does not know it itself.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root LANG=C.UTF-8
export PYTHONPATH=/site PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1

# Says of every Python where it is: in the kernel, in its own code, and what it wrote if that goes to a file.
explain() {
    printf '\nthe job hangs: no step within %s s\n' "$silence_s"
    for process in /proc/[0-9]*; do
        [ "$process/exe" -ef /usr/bin/python3 ] || continue
        printf '\n%s: %s\n' "$process" "$(tr '\0' ' ' <"$process/cmdline")"
        cat "$process/stack"
        kill -USR1 "${process#/proc/}"
        sleep 1
        [ -f "$process/fd/2" ] && cat "$process/fd/2"
    done
}

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
stty -F /dev/ttyS1 raw -echo
# Not before it has something to say does it hold the line open, the last end of which is waited for below.
{
    until [ -e /run/silent ]; do
        touch /run/silent
        sleep "$silence_s"
    done
    explain >/dev/ttyS1 2>&1
    printf '\n@@exit 124@@\n' >/dev/ttyS1
    sleep 2 # the job still holds the line open
    echo b > /proc/sysrq-trigger
} >/dev/null 2>&1 &
exec </dev/null >/dev/ttyS1 2>&1
echo 'the guest runs'
sh /job
printf '\n@@exit %s@@\n' $?
exec >/dev/null 2>&1 # waits until all that was written has gone out
echo b > /proc/sysrq-trigger
