package openlimit

const prlimit64 = 302
