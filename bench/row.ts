/** One line of the benchmark table: ours beside a baseline measured in the same run. */
export interface Row {
  name: string
  ours: number
  baseline: number
  unit: string
  ratio: number
  /** Least and greatest ratio of single rounds, where there were several. */
  spread?: string
  goal: string
  /** Null where this machine can't tell. */
  met: boolean | null
}
