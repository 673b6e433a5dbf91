// Package integration contains only tests: they run the built rdzv under real launchers, with real
// torch.
//
//	make integration                           install what is missing, build, run
//	go test ./integration -run Fails/openmpi   one test under one launcher
//	go test ./integration -run Chaos -v        10 faults in torch ranks; make chaos runs 500
//	go test ./integration -run EtcdFaults -v   clusters of etcd; make faults: 64 agents, more faults
//	go test ./integration -run Attack -v       attacks on jobs; make attack: the long forms
//	go test ./integration -run Scale -v        simulated agents; make scale: more of them
//	go test -short ./...                       all tests but these
//
// Each test starts its processes in a place of its own (home, temporary and runtime directories).
// When it ends, none of its processes may be left, and no file that was not there before. The
// workers are programs in the test binary itself (see programs). If a launcher is missing, the
// tests fail; nothing is skipped.
package integration
