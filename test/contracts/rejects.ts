import type { ExecutionContext } from 'ava'
import { type ErrorCode, RsmError } from '../../src/core/errors.ts'

/** Fails unless `work` rejects with this code; returns the fields that it names. */
export async function rejects(
  t: ExecutionContext,
  code: ErrorCode,
  work: Promise<unknown>,
): Promise<string[]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof RsmError)) {
    t.fail(`expected ${code}, but got ${error instanceof Error ? error.message : 'an answer'}`)
    return []
  }
  t.is(error.code, code, error.message)
  return error.fields.map(({ field }) => field).sort()
}

/**
 * Expects an unknown name or id in the input: `invalid` at its field (contract §1). The client reports it as `not_found`, so
 * that the command line exits with 5 (contract §9), with the same fields.
 */
export async function rejectsUnknown(t: ExecutionContext, work: Promise<unknown>): Promise<string[]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  const told = error instanceof RsmError ? error : undefined
  t.true(told?.code === 'invalid' || told?.code === 'not_found', String(error))
  return told?.fields.map(({ field }) => field).sort() ?? []
}
