// One replication under schedulers that are built in.

import { replicate, type Task } from "./replicate";

self.onmessage = ({ data }: MessageEvent<Task>): Promise<void> => replicate(data);
