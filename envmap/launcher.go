package envmap

import "slices"

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
	Torchrun   Launcher = "torchrun"   // torchrun, or RANK and WORLD_SIZE set by the user
	Kubeflow   Launcher = "kubeflow"   // PyTorchJob (RANK of the pod), TrainJob (PET_*)
	Kubernetes Launcher = "kubernetes" // an Indexed Job
	None       Launcher = "none"       // no launcher
)

// aliases are names that Detect accepts as a choice of one of several launchers.
var aliases = map[Launcher][]Launcher{
	"openmpi": {OpenMPI4, OpenMPI5},
	"mpich":   {Hydra, IntelMPI},
	Hydra:     {Hydra, IntelMPI},
	IntelMPI:  {IntelMPI, Hydra},
	Slurm:     {Slurm, SlurmPMI},
}

// Choices returns the values that Detect accepts as a choice besides "".
func Choices() []string {
	names := []string{"openmpi", "mpich"}
	for _, l := range order {
		names = append(names, string(l.name))
	}
	return names
}

// candidates returns the launchers that a choice stands for, nil for an unknown choice.
func candidates(choice Launcher) []Launcher {
	if several, ok := aliases[choice]; ok {
		return several
	}
	if slices.ContainsFunc(order, func(l recogniser) bool { return l.name == choice }) {
		return []Launcher{choice}
	}
	return nil
}

// A recogniser detects one launcher.
type recogniser struct {
	name Launcher
	// match returns the variables by which the launcher is recognised, none if it is absent.
	match func(Env) []string
	// read takes the placement from the variables.
	read func(*reader)
	// outer reports that other launchers are commonly started inside this one's allocation, so
	// that its variables need not describe their tasks.
	outer bool
}

// order holds the launchers in the order of detection.
var order = []recogniser{
	{name: OpenMPI4, match: matchOpenMPI4, read: readOpenMPI4},
	{name: OpenMPI5, match: matchOpenMPI5, read: readOpenMPI5},
	{name: MVAPICH2, match: matchMVAPICH2, read: readMVAPICH2},
	{name: PALS, match: matchPALS, read: readPALS, outer: true},
	{name: Flux, match: matchFlux, read: readFlux, outer: true},
	{name: JSM, match: matchJSM, read: readJSM, outer: true},
	{name: SlurmPMI, match: matchSlurmPMI, read: readSlurmPMI, outer: true},
	{name: IntelMPI, match: matchIntelMPI, read: readHydra},
	{name: Hydra, match: matchHydra, read: readHydra},
	{name: Slurm, match: matchSlurm, read: readSlurm, outer: true},
	{name: Torchrun, match: matchTorchrun, read: readTorchrun},
	{name: Kubeflow, match: matchKubeflow, read: readKubeflow, outer: true},
	{name: Kubernetes, match: matchKubernetes, read: readKubernetes, outer: true},
	{name: None, match: func(Env) []string { return nil }, read: func(*reader) {}, outer: true},
}

// find returns the recogniser of a launcher. Every Launcher constant has one.
func find(name Launcher) recogniser {
	return order[slices.IndexFunc(order, func(l recogniser) bool { return l.name == name })]
}
