// Package envmap turns the environment that a launcher gave a process into a [Placement] (which task of how many,
// on which node), and an agreed [Identity] into the environment of a worker. It is pure: environment in, values out;
// what it needs of the file system comes as an [io/fs.FS]. It opens no connection, reads no clock and never guesses:
// what a launcher does not tell stays [Unknown], and a placement that contradicts itself is an error that names the
// variables and their values.
//
// What each launcher sets, measured and documented, is written down in docs/launchers.md; the recorded environments
// are in testdata.
//
//	launcher's environment -> ParseEnv -> Detect -> Placement
//	agreed world           -> Identity -> Torch  -> the worker's environment
//
// The package imports nothing that costs time before main (no fmt, no reflect, no os): a program may answer
// "which rank am I" from it while it starts.
package envmap
