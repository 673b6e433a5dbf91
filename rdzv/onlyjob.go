package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
)

// OnlyJob returns the name of the job of a store that an agent hosts; "" if it has none yet. An
// agent that has found the store in another way than by the name of its job may have another one.
func OnlyJob(ctx context.Context, client *clientv3.Client) (string, error) {
	found, err := client.Get(ctx, DefaultPrefix+Root+"/", clientv3.WithPrefix(),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
	if err != nil {
		return "", fmt.Errorf("cannot read the name of the job: %w", err)
	}
	if len(found.Kvs) == 0 {
		return "", nil
	}
	return keys.NameOf(string(found.Kvs[0].Key)), nil
}
