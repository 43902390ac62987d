import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type AuditFault, type AuditHead, AuditVerifier, verifyAudit } from '../core/audit.ts'
import { RsmError } from '../core/errors.ts'
import type { AuditService } from '../core/services.ts'
import type { Api } from './api.ts'

/** The audit log over HTTP: lists, and the log itself to be checked here. */
export interface ClientAuditService extends AuditService {
  /** The bytes of the log, oldest entry first. */
  raw(): Promise<AsyncIterable<Uint8Array>>
}

export function auditOver(api: Api): ClientAuditService {
  return {
    list: (query) => api.call('GET', '/api/audit', { query }),
    async raw() {
      const stream = await api.stream('/api/audit', { accept: 'application/x-ndjson' })
      return complete(stream, api.url)
    },
  }
}

/** A connection that is lost in mid-log must not look like a log that was cut. */
async function* complete(stream: AsyncIterable<Uint8Array>, url: string): AsyncGenerator<Uint8Array> {
  try {
    yield* stream
  } catch (cause) {
    throw new RsmError('unreachable', `cannot reach ${url}: connection lost in mid-answer`, { cause })
  }
}

const places = ['', 'audit.log', join('audit', 'audit.log')]

/** The log at a path: the file itself, the directory that holds it, or a server's data directory. */
export async function auditFile(path: string): Promise<AsyncIterable<Uint8Array>> {
  for (const place of places) {
    const file = join(path, place)
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
      throw new RsmError('usage', `cannot read ${file}: ${error.message}`, { cause: error })
    })
    if (found?.isFile()) return readable(file)
  }
  throw new RsmError('not_found', `there is no audit log at ${path}`, {
    hint: 'name the file audit.log, or the data directory of the server',
  })
}

async function* readable(file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file) as AsyncIterable<Uint8Array>
  } catch (cause) {
    throw new RsmError('usage', `cannot read ${file}: ${(cause as Error).message}`, { cause })
  }
}

function sha256(...pieces: (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const piece of pieces) hash.update(piece)
  return hash.digest('hex')
}

/** Checks a log line by line; `noted` is a head that was written down earlier. */
export async function checkAudit(
  bytes: AsyncIterable<Uint8Array>,
  noted: AuditHead | null,
): Promise<{ entries: number; head: AuditHead; fault: AuditFault | null }> {
  const verifier = new AuditVerifier(sha256, noted)
  const fault = await verifyAudit(bytes, verifier)
  return { entries: verifier.entries, head: verifier.head, fault }
}
