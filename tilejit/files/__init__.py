"""Files: npy and safetensors, streamed in pieces, resumable, and sharded by rules."""
