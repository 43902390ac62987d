import { boolean, string } from '@oclif/core/flags'
import type { HostCreate } from '../../core/protocol/http/hosts.ts'
import { readNamedFile } from '../input/named-path.ts'
import { readPassword } from '../input/prompt.ts'
import type { FlagsOf } from './checks.ts'

/** SSH secrets are never arguments, because every user of the machine can read those. */
export const credentialFlags = {
  'private-key': string({
    helpValue: 'FILE',
    description: 'SSH key for installing the agent; stored encrypted',
  }),
  'password-stdin': boolean({
    description: 'read the SSH password (with a key: for sudo) from stdin',
  }),
}

export async function readCredentials(
  flags: FlagsOf<typeof credentialFlags>,
): Promise<Pick<HostCreate, 'authType' | 'privateKey' | 'password'>> {
  const password = flags['password-stdin'] ? { password: await readPassword(true, '') } : {}
  const file = flags['private-key']
  if (file === undefined) return flags['password-stdin'] ? { authType: 'PASSWORD', ...password } : {}
  return { authType: 'PRIVATE_KEY', privateKey: readNamedFile(file, '--private-key'), ...password }
}
