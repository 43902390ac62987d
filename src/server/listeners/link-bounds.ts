import type { Allowance } from '../../core/allowance.ts'
import { type Backlog, createBacklog } from './backlog.ts'
import { createEarlyRoom, type EarlyRoom } from './early-frames.ts'
import { FrameRate } from './frame-rate.ts'
import { createStrayAllowance } from './stray-frames.ts'

/** Bounds that the links of all agents share. */
export interface LinkBounds {
  readonly backlog: Backlog
  readonly earlyRoom: EarlyRoom
  readonly rate: FrameRate
  readonly strays: Allowance
}

export const createLinkBounds = (): LinkBounds => ({
  backlog: createBacklog(),
  earlyRoom: createEarlyRoom(),
  rate: new FrameRate(),
  strays: createStrayAllowance(),
})
