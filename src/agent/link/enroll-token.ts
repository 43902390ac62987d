import { RsmError } from '../../core/errors.ts'
import type { AgentOptions } from '../agent-options.ts'
import { readIdentity } from './identity.ts'

type TokenOptions = Pick<AgentOptions, 'dataDir' | 'enrollToken'>

/** The enrollment token, read now where it is in a file. @throws RsmError `usage` where there is none, or nothing that a header can hold. */
export function readEnrollToken({ enrollToken }: TokenOptions): string {
  if (enrollToken === undefined)
    throw new RsmError('usage', 'this host is not registered, and there is no enrollment token', {
      hint: 'make one with `rsm hosts join`, and give it as --enroll-token',
    })
  const token = typeof enrollToken === 'function' ? enrollToken() : enrollToken
  if (/^[!-~]+$/.test(token)) return token
  const fault = token === '' ? 'is empty' : 'holds a space, a line end, or a letter beyond ASCII'
  throw new RsmError('usage', `the enrollment token ${fault}`, {
    hint: 'a token is one word, as `rsm hosts join` prints it',
  })
}

/** The token of a host that is not registered yet. Null where it is, or where only its directory could tell, once that is ours. */
export async function tokenToEnroll(options: TokenOptions): Promise<string | null> {
  const known = await readIdentity(options.dataDir).catch(() => undefined)
  return known === undefined || known?.registration ? null : readEnrollToken(options)
}
