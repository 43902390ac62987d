import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'

/** The Unix socket of a server, in its data directory. */
const socketName = 'control.sock'

/** Bytes of a socket's path (unix(7): 108 with the zero at its end); what is longer would be cut without a word. */
const longestPath = 107

/** A path by which the socket of a data directory can be bound and reached; good until it is released. */
export interface SocketPath {
  readonly path: string
  release(): Promise<void>
}

/** The directory of a path that is too long stands in /proc under a short name. Errors: `unavailable` where there is no /proc. */
export async function controlSocket(directory: string): Promise<SocketPath> {
  const path = join(directory, socketName)
  if (Buffer.byteLength(path) <= longestPath) return { path, release: async () => undefined }
  if (!existsSync('/proc/self/fd'))
    throw new RsmError('unavailable', `the path ${path} is too long for a Unix socket`, {
      hint: `choose a data directory whose path has at most ${longestPath - socketName.length - 1} bytes`,
    })
  const handle: FileHandle = await open(directory, 'r')
  return { path: `/proc/self/fd/${handle.fd}/${socketName}`, release: () => handle.close() }
}
