package integration

import (
	"fmt"
	"testing"
)

// pyxis is what NVIDIA's plugin does to a task of srun before it starts its program: the variables of
// the image win over the job's, those of enroot's hook 50-slurm-pytorch.sh are there if the image has
// PYTORCH_VERSION (all of NGC), and the task enters a user and a mount namespace with the host's
// /proc, network and process IDs, without scontrol.
//
// Source: pyxis_slurmstepd.c at 1075199 (spank_import_container_env, pytorch_setup, setns), and
// conf/hooks/extra/50-slurm-pytorch.sh and conf/mounts/10-system.fstab of enroot at 8ea147d.
const pyxis = `
export PATH=/bin LANG= PYTORCH_VERSION=2.9.0 MASTER_ADDR=node1 WORLD_SIZE=$SLURM_NTASKS
export MASTER_PORT=$((SLURM_JOB_ID % 4536 + 61000)) RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID
export OMP_NUM_THREADS=1 TMPDIR=/tmp
root=$1; shift
exec /usr/bin/unshare --user --map-root-user --mount /bin/sh -c '
	/usr/bin/mount --rbind /proc "$0/proc" && /usr/bin/mount --rbind /dev "$0/dev" &&
	/usr/bin/mount -t tmpfs tmpfs "$0/tmp" &&
	exec /usr/sbin/chroot "$0" "$@"' "$root" "$@"`

// The ranks are srun's, although the image says MASTER_PORT and WORLD_SIZE too.
func TestPyxis(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	p := c.newPlace(t)
	env := []string{"RDZV_TOKEN=" + oneToken, "HOSTS_DIR=" + c.root + "/hosts"}
	run := func(script string) *process {
		line := []string{"on", "1", "srun", "-O", "-N2", "-n4", "sh", "-c", pyxis, "sh", p.rootFS()}
		return p.startWith(env, c.slurm(append(line, rdzvInside(nil, sh(script))...)...)...)
	}
	job := run(`echo "rank $RANK of $WORLD_SIZE, local rank $LOCAL_RANK on $(hostname)"`)
	job.checkCode(0)
	for rank := range 4 {
		job.waitFor(fmt.Sprintf("rank %d of 4, local rank %d on node%d", rank, rank%2, rank/2+1))
	}
	job.waitFor("4 ranks on 2 nodes: node1 0-1, node2 2-3")
	job.waitFor("replacing variables of the environment: MASTER_ADDR=node1 by ")
	if lines := job.linesWith("rdzv: "); len(lines) != 2 {
		t.Errorf("rdzv printed %q, want these two lines", lines)
	}
	job = run(`[ $RANK = 3 ] && exit 7; exec sleep 1000`)
	job.checkCode(7)
	job.waitFor("rank 3 of 4 failed first")
}
