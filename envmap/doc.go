// Package envmap reads the environment that a launcher gave a process and returns a [Placement]
// (which task of how many, on which node); from an agreed [Identity] it makes the environment of a
// worker. It is pure: environment in, values out. Files are read through an [io/fs.FS]; the package
// opens no connection and reads no clock. It does not guess: what a launcher does not set stays
// [Unknown], and contradictory variables are an error that names them and their values.
//
// dev/launchers.md lists what each launcher sets, measured or taken from its documentation;
// testdata holds recorded environments.
//
//	launcher's environment -> ParseEnv -> Detect -> Placement
//	agreed world           -> Identity -> Torch  -> the worker's environment
//
// The package imports nothing with an expensive initialisation (no fmt, no reflect, no os), so that
// a program can determine its rank before its other packages are initialised.
package envmap
