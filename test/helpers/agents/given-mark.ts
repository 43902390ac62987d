import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunMark } from '../../../src/core/protocol/messages.ts'
import { createKeys, sealKeyBytes } from '../../../src/server/storage/keys.ts'
import type { TestServer } from '../servers/server.ts'

/** A mark as the server would have given it to this agent; its store need not know that start. */
export function givenMark(server: Pick<TestServer, 'dataDir'>, agentId: string, mark: RunMark): RunMark {
  const signingKey = readFileSync(join(server.dataDir, 'keys', 'signing.key'))
  return createKeys(Buffer.alloc(sealKeyBytes), signingKey).authenticated(agentId, mark)
}
