import { string } from '@oclif/core/flags'
import { RsmError } from '../../core/errors.ts'
import { parseDuration } from '../input/values.ts'
import { type FlagsOf, given, ifGiven } from './given.ts'

const run = { helpGroup: 'RUN' } as const

/** Scripts that run on each host after the main one (contract §15). */
export const gateFlags = {
  verify: string({
    ...run,
    helpValue: 'FILE|NAME',
    description: 'script that must also succeed for a host to be successful',
  }),
  'verify-retries': string({
    ...run,
    helpValue: 'N',
    description: 'retry a failed verification up to N times',
  }),
  'verify-interval': string({
    ...run,
    helpValue: 'TIME',
    description: 'wait between two attempts (default: 5s)',
  }),
  rollback: string({
    ...run,
    helpValue: 'FILE|NAME',
    description: 'script for hosts that failed, timed out or were not verified',
  }),
}

export type GateFlags = FlagsOf<typeof gateFlags>

function retries(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) <= 1000) return Number(text)
  throw new RsmError('usage', `--verify-retries takes a number from 0 to 1000, not ${text}`)
}

/** Retries and interval of the verification. Errors: `usage`, also if they have no effect without --verify. */
export function readVerifyTimes(flags: GateFlags): { retries?: number; intervalSeconds?: number } {
  const useless = (['verify-retries', 'verify-interval'] as const).find((name) => flags[name] !== undefined)
  if (flags.verify === undefined && useless !== undefined)
    throw new RsmError('usage', `--${useless} is for --verify FILE|NAME`)
  return given({
    retries: ifGiven(flags['verify-retries'], retries),
    intervalSeconds: ifGiven(flags['verify-interval'], parseDuration),
  })
}
