package envmap

import "slices"

// Launcher names what started this process.
type Launcher string

// The launchers that are told apart, in the order in which they are looked for: those that run inside the
// allocation of another come first, for mpirun's ranks inside a Slurm job have Slurm's variables too, and wrong ones.
const (
	OpenMPI4   Launcher = "openmpi4"   // mpirun of Open MPI 4 and older (ORTE)
	OpenMPI5   Launcher = "openmpi5"   // mpirun of Open MPI 5 and newer, prterun (PRRTE)
	MVAPICH2   Launcher = "mvapich2"   // mpirun_rsh, mpiexec of MVAPICH2
	PALS       Launcher = "pals"       // mpiexec of HPE Cray PALS
	Flux       Launcher = "flux"       // flux run
	JSM        Launcher = "jsm"        // jsrun
	SlurmPMI   Launcher = "slurm-pmi"  // srun with a PMI of Slurm's own (--mpi=pmi2): never speak PMI-1 there
	Hydra      Launcher = "hydra"      // mpiexec of MPICH
	IntelMPI   Launcher = "intelmpi"   // mpiexec of Intel MPI, a Hydra too
	Slurm      Launcher = "slurm"      // srun
	Torchrun   Launcher = "torchrun"   // torchrun, or RANK and WORLD_SIZE set by hand
	Kubeflow   Launcher = "kubeflow"   // PyTorchJob (RANK of the pod), TrainJob (PET_*)
	Kubernetes Launcher = "kubernetes" // an Indexed Job
	None       Launcher = "none"       // by hand
)

// aliases are further names that Detect accepts as a choice.
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

// meant returns the launchers that a choice may mean; none if it is not a choice.
func meant(choice Launcher) []Launcher {
	if more, ok := aliases[choice]; ok {
		return more
	}
	if slices.ContainsFunc(order, func(l recogniser) bool { return l.name == choice }) {
		return []Launcher{choice}
	}
	return nil
}

// recogniser knows one launcher.
type recogniser struct {
	name Launcher
	// seen returns the variables by which the launcher is recognised; none means it is not there.
	seen func(Env) []string
	// read takes the placement from the variables.
	read func(*reader)
	// host reports that other launchers are started inside this one's allocation as a matter of course, so that its
	// variables say nothing about their tasks.
	host bool
}

// order holds the launchers in the order of detection.
var order = []recogniser{
	{name: OpenMPI4, seen: seenOpenMPI4, read: readOpenMPI4},
	{name: OpenMPI5, seen: seenOpenMPI5, read: readOpenMPI5},
	{name: MVAPICH2, seen: seenMVAPICH2, read: readMVAPICH2},
	{name: PALS, seen: seenPALS, read: readPALS, host: true},
	{name: Flux, seen: seenFlux, read: readFlux, host: true},
	{name: JSM, seen: seenJSM, read: readJSM, host: true},
	{name: SlurmPMI, seen: seenSlurmPMI, read: readSlurmPMI, host: true},
	{name: IntelMPI, seen: seenIntelMPI, read: readHydra},
	{name: Hydra, seen: seenHydra, read: readHydra},
	{name: Slurm, seen: seenSlurm, read: readSlurm, host: true},
	{name: Torchrun, seen: seenTorchrun, read: readTorchrun},
	{name: Kubeflow, seen: seenKubeflow, read: readKubeflow, host: true},
	{name: Kubernetes, seen: seenKubernetes, read: readKubernetes, host: true},
	{name: None, seen: func(Env) []string { return nil }, read: func(*reader) {}, host: true}, // what is left
}

// find returns the recogniser of a launcher. It is there for every constant above.
func find(name Launcher) recogniser {
	return order[slices.IndexFunc(order, func(l recogniser) bool { return l.name == name })]
}
