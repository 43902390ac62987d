import { readFileSync } from 'node:fs'

/** A key that no other request has. From the kernel where it gives one: loading node:crypto takes a tenth of a start. */
export function newIdempotencyKey(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/uuid', 'utf8').trim()
  } catch {
    return process.getBuiltinModule('node:crypto').randomUUID()
  }
}
