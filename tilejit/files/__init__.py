"""Files: npy and safetensors, streamed in parts, resumed, sharded by rules."""
