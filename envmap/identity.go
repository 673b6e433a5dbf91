package envmap

// Identity is the place of one worker in the job, on which the agents have agreed, with settings of
// its node. TorchChanges makes the worker's environment of it.
type Identity struct {
	Rank           int // 0 to WorldSize-1
	WorldSize      int // workers of the job
	LocalRank      int // 0 to LocalWorldSize-1
	LocalWorldSize int // workers on this node; may differ between nodes
	NodeRank       int // 0 to Nodes-1
	Nodes          int // nodes with workers

	MasterAddr string // address of rank 0 for torch's store
	MasterPort int    // port of rank 0 for torch's store
	RunID      string // the job's name
	Attempt    int    // 0 for the first attempt
	Restarts   int    // largest number of attempts after the first
	ErrorFile  string // where torch's @record writes the traceback; not set if ""
	Launcher   Launcher
	Tasks      int // of the launcher on this node; 0 if that is unknown

	NodeAddr string // address of this node, as MASTER_ADDR would be if rank 0 were on it
	// Interface is the network interface with NodeAddr. If it is "", the
	// *_SOCKET_IFNAME variables are not set.
	Interface string
	// NCCLConfigured says that /etc/nccl.conf or ~/.nccl.conf exists. NCCL_SOCKET_IFNAME would
	// override it and is not set then.
	NCCLConfigured bool
	// NoLibuv says that torch uses libuv by default and was built without it.
	NoLibuv bool
	// Threads is the value of OMP_NUM_THREADS (see CPUs.Threads); not set if 0.
	Threads int
	// Visible are the devices of this process (see VisibleDevices).
	Visible Devices
	// GPUs is the number of devices of this node, for GPU_PER_NODE; not set if 0.
	GPUs int
	// RASAddr is where NCCL's RAS service of the worker listens, as HOST:PORT; not set if "".
	RASAddr string
	// Recorder says where torch's flight recorder of NCCL writes, without the rank at the end of
	// each path.
	Recorder Recorder
}

// Recorder are the files of torch's flight recorder: Dump of what it has recorded, and Pipe, a
// FIFO, by which it is told to write that. What is "" is not set.
type Recorder struct{ Dump, Pipe string }

// check finds ranks out of range.
func (id Identity) check() error {
	for _, c := range []struct {
		what         string
		index, count int
	}{
		{"rank", id.Rank, id.WorldSize},
		{"local rank", id.LocalRank, id.LocalWorldSize},
		{"node rank", id.NodeRank, id.Nodes},
	} {
		if c.index < 0 || c.index >= c.count {
			return &Error{Text: "cannot set the worker's environment: " +
				c.what + " " + itoa(c.index) + " of " + itoa(c.count) + " is out of range"}
		}
	}
	return nil
}
