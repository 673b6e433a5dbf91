package openlimit

const prlimit64 = 261
