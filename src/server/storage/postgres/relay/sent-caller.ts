import type { UserCaller } from '../../ports/caller.ts'
import type { SentCaller } from './messages.ts'

const finite = (time: number) => (Number.isFinite(time) ? time : null)

export const sentCaller = ({ expiresAt, idleAt, ...caller }: UserCaller): SentCaller => ({
  ...caller,
  expiresAt: finite(expiresAt),
  idleAt: finite(idleAt),
})

export const callerOf = ({ expiresAt, idleAt, ...caller }: SentCaller): UserCaller => ({
  ...caller,
  expiresAt: expiresAt ?? Number.POSITIVE_INFINITY,
  idleAt: idleAt ?? Number.POSITIVE_INFINITY,
})
