package agent

import (
	"context"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// pushesAtOnce is the maximum number of concurrent pushes. It bounds the memory that unauthorised clients can use,
// because the agent can check a push only when it has read all of it, up to 64 MiB.
const pushesAtOnce = 4

// limitPushes returns a handler that rejects pushes above the limit before they are read.
func limitPushes() tap.ServerInHandle {
	places := make(chan struct{}, pushesAtOnce)
	return func(ctx context.Context, call *tap.Info) (context.Context, error) {
		if call.FullMethodName != v1.P4Runtime_SetForwardingPipelineConfig_FullMethodName {
			return ctx, nil
		}
		select {
		case places <- struct{}{}:
			context.AfterFunc(ctx, func() { <-places })
			return ctx, nil
		default:
			return nil, status.Errorf(codes.ResourceExhausted,
				"%d pipelines are already being pushed; try again when they are done", pushesAtOnce)
		}
	}
}
