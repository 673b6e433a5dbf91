package envmap

// Launcher names what started this process.
type Launcher string

// The launchers, in the order in which Detect looks for them. Launchers that run inside the
// allocation of another come first: mpirun's ranks inside a Slurm job also have Slurm's variables,
// with wrong values.
const (
	OpenMPI4 Launcher = "openmpi4" // mpirun of Open MPI 4 and older (ORTE)
	OpenMPI5 Launcher = "openmpi5" // mpirun of Open MPI 5 and newer, prterun (PRRTE)
	MVAPICH2 Launcher = "mvapich2" // mpirun_rsh, mpiexec of MVAPICH2
	PALS     Launcher = "pals"     // mpiexec of HPE Cray PALS
	Flux     Launcher = "flux"     // flux run
	JSM      Launcher = "jsm"      // jsrun
	// SlurmPMI is srun with Slurm's own PMI (--mpi=pmi2). Never use PMI-1 there: Slurm's plugin
	// accepts it only once per task, and a second use hangs the job.
	SlurmPMI   Launcher = "slurm-pmi"
	Hydra      Launcher = "hydra"      // mpiexec of MPICH
	IntelMPI   Launcher = "intelmpi"   // mpiexec of Intel MPI, a variant of Hydra
	Slurm      Launcher = "slurm"      // srun
	Torchrun   Launcher = "torchrun"   // torchrun
	Kubeflow   Launcher = "kubeflow"   // TrainJob (PET_*), PyTorchJob and Volcano's plugin pytorch
	LWS        Launcher = "lws"        // LeaderWorkerSet of Kubernetes
	Volcano    Launcher = "volcano"    // Volcano's plugins env and svc
	SkyPilot   Launcher = "skypilot"   // SkyPilot
	Dstack     Launcher = "dstack"     // dstack
	Beaker     Launcher = "beaker"     // Beaker
	RunPod     Launcher = "runpod"     // a cluster of RunPod
	JobSet     Launcher = "jobset"     // JobSet of Kubernetes, with its annotations as variables
	Kubernetes Launcher = "kubernetes" // an Indexed Job, which may be that of a JobSet
	UserSet    Launcher = "env"        // RANK and WORLD_SIZE as the user says; only if chosen
	None       Launcher = "none"       // no launcher
)

// Reports tells whether the output of the tasks has messages of the launcher about those that it
// could not start. Where each task is started by itself, nothing reports that to the others.
func (l Launcher) Reports() bool {
	return l != UserSet && l != None && !isPlatform(l)
}

// aliases are names that Detect accepts as a choice of one of several launchers.
var aliases = map[Launcher][]Launcher{
	"openmpi": {OpenMPI4, OpenMPI5},
	"mpich":   {Hydra, IntelMPI},
	Hydra:     {Hydra, IntelMPI},
	IntelMPI:  {IntelMPI, Hydra},
	Slurm:     {Slurm, SlurmPMI},
}

// sharing are launchers, besides those of aliases, that read the same variables.
var sharing = [][]Launcher{
	{UserSet, Torchrun}, {UserSet, Kubeflow}, {UserSet, RunPod}, {JobSet, Kubernetes},
}
