import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { type AuditFault, AuditVerifier, verifyAudit } from '../../../src/core/audit.ts'
import { systemClock } from '../../../src/disk/clock.ts'
import { sha256 } from '../../../src/disk/digest.ts'
import { createLog } from '../../../src/disk/log.ts'
import { openFileAuditLog } from '../../../src/server/storage/files/audit-log.ts'
import type { AuditEvent, AuditLog } from '../../../src/server/storage/ports/audit-log.ts'

export async function auditDirectory(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'rsm-audit-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

type Options = Parameters<typeof openFileAuditLog>[0]

/** Opens the log of a directory; the caller closes it. */
export function openLog(directory: string, options: Partial<Options> = {}): Promise<AuditLog> {
  return openFileAuditLog({
    directory,
    storeId: 'store-1',
    clock: systemClock,
    log: createLog('ERROR'),
    sha256,
    onFatal: (error) => {
      throw error
    },
    ...options,
  })
}

export const event = (action: string, more: Partial<AuditEvent> = {}): AuditEvent => ({
  actor: { type: 'user', id: 1, name: 'admin', tokenId: 2 },
  ip: '127.0.0.1',
  action,
  object: null,
  outcome: 'SUCCESS',
  detail: {},
  ...more,
})

/** Verifies the current log; returns the number of entries and the first fault. */
export async function verified(
  log: Pick<AuditLog, 'raw'>,
): Promise<{ entries: number; fault: AuditFault | null }> {
  const verifier = new AuditVerifier(sha256)
  const fault = await verifyAudit(log.raw(), verifier)
  return { entries: verifier.entries, fault }
}
