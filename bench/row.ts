/** One line of the benchmark table: ours and a baseline measured in the same run. */
export interface Row {
  name: string
  ours: number
  baseline: number
  unit: string
  ratio: number
  /** Smallest and largest ratio of single rounds, if there are several. */
  spread?: string
  goal: string
  /** Null if this machine cannot tell. */
  met: boolean | null
}
