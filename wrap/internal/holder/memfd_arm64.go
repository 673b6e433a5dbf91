//go:build holderexec

package holder

const memfdCreate = 279
