/** One line of the benchmark table: ours beside a baseline measured in the same run. */
export interface Row {
  name: string
  ours: number
  baseline: number
  unit: string
  ratio: number
  goal: string
  met: boolean
}
