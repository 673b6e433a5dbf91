// Package integration holds no code but tests: the built rdzv under real launchers, with real torch.
//
//	make integration                           install what is missing, build, run
//	go test ./integration -run Fails/openmpi   one story under one launcher
//	go test ./integration -run Chaos -v        10 faults in torch ranks; make chaos runs 500
//	go test -short ./...                       all but these
//
// Every test starts its processes in a place of its own (HOME, temporary and runtime directory), and ends with two
// checks: no process of it lives, and nothing lies there that was not there before. The workers are the test binary
// itself, see worker_test.go. A launcher that is missing fails the run; nothing is skipped.
package integration
