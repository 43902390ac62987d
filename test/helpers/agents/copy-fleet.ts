import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import { type CommandLine, commandLine } from '../clients/command-line.ts'
import { startTestServer, type TestServer } from '../servers/server.ts'
import { realAgent } from './real-agent.ts'

interface CopyFleet {
  readonly server: TestServer
  readonly rsm: CommandLine
  readonly theirs: string
  readonly ours: string
  /** Makes a file on the user's side, with its directories; returns its path. */
  readonly file: (name: string, content: string | Buffer, mode?: number) => string
  /** Path of a file on the hosts' side. */
  readonly there: (name: string) => string
}

/** A real server with real agents on this machine, a directory that stands for the hosts, and one for the user. */
export async function copyFleet(t: ExecutionContext, ...hostnames: string[]): Promise<CopyFleet> {
  const server = await startTestServer(t)
  for (const hostname of hostnames) await realAgent(t, server, { hostname })
  const theirs = temporaryDirectory(t)
  const ours = temporaryDirectory(t)
  return {
    server,
    rsm: commandLine(t, server),
    theirs,
    ours,
    file(name, content, mode = 0o644) {
      const path = join(ours, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content)
      chmodSync(path, mode)
      return path
    },
    there: (name) => readFileSync(join(theirs, name), 'utf8'),
  }
}
