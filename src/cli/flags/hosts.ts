import { string } from '@oclif/core/flags'
import { repeated } from './repeated.ts'

/** How hosts are named where a command takes one or more, in the words of help. */
export const hostsDescription = "hosts, like web1, 'web[1-3]' or @id:17"

/** `-w` also works where hosts are arguments, because other commands take it. */
export const hostsFlag = string({
  char: 'w',
  ...repeated,
  helpValue: 'SELECTOR',
  description: 'the same as SELECTOR',
})

export const tagFlag = (description: string) =>
  string({ char: 't', ...repeated, helpValue: 'KEY=VALUE', description })
