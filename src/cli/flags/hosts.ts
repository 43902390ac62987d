import { boolean, string } from '@oclif/core/flags'
import type { HostCreate } from '../../core/protocol/http/hosts.ts'
import { readNamedFile } from '../input/named-path.ts'
import { readPassword } from '../input/prompt.ts'
import { type FlagsOf, integer, repeated } from './checks.ts'

const ssh = { helpGroup: 'SSH' } as const

export const hostsDescription = "hosts, like web1, 'web[1-3]' or @id:17"

/** Accepts `-w` where hosts are arguments, because other commands take it. */
export const hostsFlag = string({
  char: 'w',
  ...repeated,
  helpValue: 'SELECTOR',
  description: 'the same as SELECTOR',
})

export const tagFlag = (description: string) =>
  string({ char: 't', ...repeated, helpValue: 'KEY=VALUE', description })

export const sshFlags = {
  ssh: string({
    ...ssh,
    helpValue: 'NODESET',
    exclusive: ['replace', 'max-uses'],
    description: "install and join these hosts by ssh, like 'web[01-20]'",
  }),
  'ssh-user': string({ ...ssh, helpValue: 'USER', description: 'log in as this user' }),
  jump: string({
    ...ssh,
    char: 'J',
    helpValue: 'JUMP',
    description: 'connect through this host, as ssh -J',
  }),
  sudo: boolean({
    ...ssh,
    exclusive: ['ask-sudo-password'],
    description: 'become root with sudo, without a password',
  }),
  'ask-sudo-password': boolean({
    ...ssh,
    description: 'ask once for the sudo password of these hosts',
  }),
  'accept-new': boolean({ ...ssh, description: 'trust the host keys of unknown hosts' }),
  prefix: string({
    ...ssh,
    helpValue: 'DIR',
    description: 'install into DIR/bin of the hosts (default: /usr/local)',
  }),
  concurrency: integer({
    ...ssh,
    char: 'f',
    min: 1,
    max: 256,
    helpValue: 'N',
    description: 'at most N hosts at once (default: 8)',
  }),
}

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
