import { boolean, string } from '@oclif/core/flags'
import type { HostCreate } from '../../core/protocol/http/hosts.ts'
import { readNamedFile } from '../input/named-file.ts'
import { readPassword } from '../input/password.ts'
import type { FlagsOf } from './given.ts'

/** A host's SSH secret is never an argument, which all users of the machine could read. */
export const credentialFlags = {
  'private-key': string({
    helpValue: 'FILE',
    exclusive: ['password-stdin'],
    description: 'SSH key by which the server installs the agent, stored encrypted',
  }),
  'password-stdin': boolean({
    exclusive: ['private-key'],
    description: 'SSH password for that from stdin, stored encrypted',
  }),
}

export async function readCredentials(
  flags: FlagsOf<typeof credentialFlags>,
): Promise<Pick<HostCreate, 'authType' | 'privateKey' | 'password'>> {
  if (flags['private-key'] !== undefined)
    return { authType: 'PRIVATE_KEY', privateKey: readNamedFile(flags['private-key'], '--private-key') }
  if (!flags['password-stdin']) return {}
  return { authType: 'PASSWORD', password: await readPassword(true, '') }
}
