// Package procfs reads information about processes from /proc. It has one parser per file format,
// used by all packages except envmap.
//
// It is linked into processes that start before most packages are initialised, so it imports only
// what is initialised before "reflect". Parsers that need more, such as that of the TCP connection
// tables, are in packages below this one.
package procfs
