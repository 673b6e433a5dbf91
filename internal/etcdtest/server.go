// Package etcdtest starts etcd servers in the process of a test.
package etcdtest

import (
	"context"
	"errors"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Start starts an etcd of one member with its files in a directory, whose URL has a scheme. change
// may be nil.
func Start(
	ctx context.Context, dir, scheme string, change func(*embed.Config),
) (*embed.Etcd, string, error) {
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenPeerUrls = nil
	c.ListenClientUrls = []url.URL{{Scheme: scheme, Host: "127.0.0.1:0"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs, c.BcryptCost = 10, 100, 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	if change != nil {
		change(c)
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, scheme + "://" + e.Clients[0].Addr().String(), nil
	case <-ctx.Done():
		e.Close()
		return nil, "", context.Cause(ctx)
	}
}

// AddUsers requires passwords: "admin" of root, "secret" of alice, who may use the keys with the
// prefix /rdzv/, and of bob, who may not.
func AddUsers(ctx context.Context, url string) error {
	admin, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{url}, Logger: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	defer admin.Close()
	var problems []error
	do := func(_ any, err error) { problems = append(problems, err) }
	do(admin.RoleAdd(ctx, "rdzv"))
	do(admin.RoleGrantPermission(ctx, "rdzv", "/rdzv/", clientv3.GetPrefixRangeEnd("/rdzv/"),
		clientv3.PermissionType(clientv3.PermReadWrite)))
	do(admin.UserAdd(ctx, "root", "admin"))
	do(admin.UserGrantRole(ctx, "root", "root"))
	do(admin.UserAdd(ctx, "alice", "secret"))
	do(admin.UserGrantRole(ctx, "alice", "rdzv"))
	do(admin.UserAdd(ctx, "bob", "secret"))
	do(admin.AuthEnable(ctx))
	return errors.Join(problems...)
}
