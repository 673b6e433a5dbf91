// Package meet answers three questions for one agent of a job: where is the job's store, who hosts
// it, and with which key. It knows nothing of etcd: who hosts gets a listener that lets only agents
// of the job in, everybody else gets a verified connection.
//
// What an agent can know differs by launcher, so there is one row of a table for each, and the
// first that matches decides:
//
//	--store, RDZV_STORE        the agent that owns the address hosts               key from the token
//	RDZV_JOIN                  the line that the first node printed                key in the line
//	Open MPI 4                 rank 0 hosts; addresses from mpirun's variables     key from mpirun's own secret
//	Open MPI 5                 rank 0 hosts; addresses from the daemon's line      key from the token
//	Hydra, Intel MPI           rank 0 hosts and puts its addresses through PMI-1   random key, put there too
//	Slurm step                 rank 0 hosts; the nodes of the step                 key from the token
//	any other with a rank      rank 0 hosts; its host's name if given, beacons     key from the token
//	by hand                    multicast beacons, the lowest id hosts              key from the token
//
// An agent that looks for the store tries addresses again and again until its context ends: the
// store may come later. Only the right store passes the handshake, so trying a wrong address costs
// nothing but time.
//
// What goes over the wire, before the store's own protocol begins: a mutual TLS 1.3 handshake (see
// secret.Key), then one line from the host, "rdzv1 ok" or "rdzv1 moved ADDR:PORT" (see package
// gate). Without a key (--insecure) both sides send a line naming the job instead of the handshake,
// which keeps jobs apart and protects from nobody.
//
// What belongs here: the rows of the table, one file each; how it is decided who hosts (by rank,
// lock, beacon, or PMI); the search; and the Meeting that comes of it. What does not: the store
// itself and its protocol, which host and connect through the Meeting; the workers; and any output,
// which is reported as a Notice or an error. Reading the launchers' variables that the rest of rdzv
// needs is package envmap's.
package meet
