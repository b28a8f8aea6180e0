package testbed

import (
	"context"

	v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/olafctl/olaf/internal/caller"
)

// writesTables reports whether a method of P4Runtime can change tables or decides which controller may change them.
func writesTables(method string) bool {
	switch method {
	case v1.P4Runtime_Write_FullMethodName, v1.P4Runtime_SetForwardingPipelineConfig_FullMethodName,
		v1.P4Runtime_StreamChannel_FullMethodName:
		return true
	}
	return false
}

// checkCaller returns an error if a call would write to the tables of a device that another user has reserved.
// Controllers that do not send a user name, such as those of other projects, count as the user for whom the device is
// lent.
func (s *Service) checkCaller(ctx context.Context, method string) error {
	if s.admit == nil || !writesTables(method) {
		return nil
	}
	user := s.owner
	if sent := metadata.ValueFromIncomingContext(ctx, caller.MetadataKey); len(sent) > 0 {
		user = sent[0]
	}
	if err := s.admit(user); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return nil
}

// admitCall calls handle unless checkCaller rejects the caller.
func (s *Service) admitCall(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if err := s.checkCaller(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handle(ctx, request)
}

// admitStream calls handle for a stream unless checkCaller rejects the caller.
func (s *Service) admitStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if err := s.checkCaller(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handle(server, stream)
}
