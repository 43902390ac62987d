import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { RegisterResult } from '../../core/protocol/http/agent.ts'
import { writeFileDurably } from '../../disk/durable.ts'

/** Result of a registration, kept permanently. */
export type Registration = Omit<RegisterResult, 'serverTime'>

/** This agent's identity. The id is saved before the first registration, so that a retry reuses it. */
export interface Identity {
  agentId: string
  registration: Registration | null
  /** SHA-256 of that registration's enrollment token, to tell whether a later one uses a new token. */
  enrolledWith?: string
}

const fileName = 'identity.json'

export function newAgentId(): string {
  return `agt-${randomBytes(10).toString('hex')}`
}

/** Null if it does not exist. @throws RsmError `unavailable` if the file is damaged. */
export async function readIdentity(directory: string): Promise<Identity | null> {
  const path = join(directory, fileName)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  try {
    const identity = JSON.parse(text) as Identity
    if (typeof identity.agentId === 'string') return identity
  } catch {
    // Falls through: report it like a file of another shape.
  }
  throw new RsmError('unavailable', `${path} is damaged`, {
    hint: 'restore it, or remove it and register this host again with an enrollment token',
  })
}

export async function writeIdentity(directory: string, identity: Identity): Promise<void> {
  await writeFileDurably(join(directory, fileName), `${JSON.stringify(identity, null, 2)}\n`, 0o600)
}
