// forecast_schema.ts - what the API says of forecasts.

export interface Expected {
  p10?: number;
  p50?: number;
  p90?: number;
  later?: number;
  horizon?: number;
  basis?: string;
  basis_jobs?: number;
  made?: number;
  policy?: string;
  method?: string;
  coverage_80?: number;
  coverage_n?: number;
}

export interface ForecastJob {
  id: number;
  expected_start?: Expected;
  expected_end?: Expected;
}

export interface ForecastKind {
  policy: string;
  target: "start" | "end";
  method: "played" | "baseline";
  n: number;
  coverage_80?: number;
  median_abs_error_s?: number;
  shown?: boolean;
}

export interface Calibration {
  n: number;
  coverage_80?: number;
  median_abs_error_s?: number;
  days?: number;
  kinds?: ForecastKind[];
}

export interface Forecast {
  policy?: string;
  made?: number;
  took_s?: number;
  replicates?: number;
  horizon?: number;
  reason?: string;
  jobs?: ForecastJob[];
  calibration?: Calibration;
}

/** Of the event stream. */
export interface ForecastEvent {
  made: number;
  horizon?: number;
  policy?: string;
  jobs: ForecastJob[];
  more?: boolean;
}

declare module "./schema" {
  interface Job {
    expected_start?: Expected;
    expected_end?: Expected;
  }
}
