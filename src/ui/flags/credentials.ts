import { boolean, string } from '@oclif/core/flags'
import type { HostCreate } from '../../core/protocol/http/hosts.ts'
import { readNamedFile } from '../input/named-file.ts'
import { readPassword } from '../input/password.ts'

/** How a host's SSH secret is said: never as an argument, which all users of the machine can read. */
export const credentialFlags = {
  'private-key': string({
    helpValue: 'FILE',
    exclusive: ['password-stdin'],
    description: 'SSH key for the record, stored encrypted; rsm itself never uses it',
  }),
  'password-stdin': boolean({
    exclusive: ['private-key'],
    description: 'SSH password for the record from stdin, stored encrypted; rsm itself never uses it',
  }),
}

interface CredentialFlags {
  readonly 'private-key'?: string | undefined
  readonly 'password-stdin': boolean
}

export async function readCredentials(
  flags: CredentialFlags,
): Promise<Pick<HostCreate, 'authType' | 'privateKey' | 'password'>> {
  if (flags['private-key'] !== undefined)
    return { authType: 'PRIVATE_KEY', privateKey: readNamedFile(flags['private-key'], '--private-key') }
  if (!flags['password-stdin']) return {}
  return { authType: 'PASSWORD', password: await readPassword(true, '') }
}
