// Package meet determines, for one agent of a job, where the job's store is, which agent hosts it,
// and the job key. It does not depend on etcd: an agent that hosts the store gets a listener that
// admits only agents of the job, and every other agent gets an authenticated connection.
//
// What an agent knows depends on the launcher. There is one row per launcher, and the first row
// that matches determines the plan:
//
//	rdzv exec --hosts          the first host hosts; it reports where   key from the starter
//	RDZV_JOIN                  the first node has printed the address     key from the line
//	--store, RDZV_STORE        an agent on the named host hosts           key from the token
//	Open MPI 4                 rank 0 hosts; mpirun's variables           key from mpirun's secret
//	Open MPI 5                 rank 0 hosts; its daemon's command line    key from the token
//	Hydra, Intel MPI           rank 0 hosts and puts its addresses (PMI)  random key, also put
//	Slurm step                 rank 0 hosts; the nodes of the step        key from the token
//	any other with a rank      rank 0 hosts; its host name, multicast     key from the token
//	none                       rank 0 hosts, if there; multicast          key from the token
//
// An agent that searches for the store tries addresses repeatedly until its context ends, because
// the store may start later. Only the store of the same job passes the handshake, so trying a wrong
// address does no harm.
//
// Before the store's own protocol, a connection carries a mutual TLS 1.3 handshake (see package
// secret) and one line from the agent that listens, such as "rdzv5 ok" or "rdzv5 full"
// (see package gate). With --insecure the key is one that everybody can have: that keeps jobs
// apart, but provides no security.
//
// The package does not print anything; it reports through Notice and errors. The variables that
// launchers set are read by package envmap, except those that only locate the store.
package meet
