package envmap

// Identity is what the agents agreed on for one worker: who it is, and what Torch turns into its environment.
type Identity struct {
	Rank           int // 0 to WorldSize-1
	WorldSize      int // all workers
	LocalRank      int // 0 to LocalWorldSize-1
	LocalWorldSize int // workers on this node; may differ between nodes
	NodeRank       int // 0 to Nodes-1
	Nodes          int // nodes with workers

	MasterAddr string // address of rank 0 for torch's store
	MasterPort int    // its port
	RunID      string // the job's name
	Attempt    int    // 0 at first
	Restarts   int    // most attempts after the first
	ErrorFile  string // where torch's @record writes the traceback; "" sets nothing
	Launcher   Launcher

	// Interface is the network interface that holds this node's address; "" leaves the *_SOCKET_IFNAME variables alone.
	Interface string
	// NCCLConfigured says that /etc/nccl.conf or ~/.nccl.conf exists: NCCL_SOCKET_IFNAME would override it, and is left alone.
	NCCLConfigured bool
	// Threads is the value for OMP_NUM_THREADS (see Threads); 0 sets nothing.
	Threads int
	// Visible is what VisibleDevices found.
	Visible Devices
	// GPUs is the number of devices on this node, for GPU_PER_NODE; 0 sets nothing.
	GPUs int
}

// check finds numbers that cannot be.
func (id Identity) check() error {
	for _, c := range []struct {
		what         string
		index, count int
	}{
		{"rank", id.Rank, id.WorldSize}, {"local rank", id.LocalRank, id.LocalWorldSize}, {"node rank", id.NodeRank, id.Nodes},
	} {
		if c.index < 0 || c.index >= c.count {
			return &Error{Text: "cannot set the worker's environment: " + c.what + " " + itoa(c.index) + " of " + itoa(c.count)}
		}
	}
	return nil
}
