"""The services' own error codes and types, and what each one means for a caller."""

from __future__ import annotations

from collections.abc import Mapping

from lighter_core import ModelErrorCode

__all__ = ["AUTH", "BY_VENDOR_CODE", "RATE"]

RATE = ("rate_limit_exceeded", "rate_limit_error", "insufficient_quota")
SERVER = (
    "server_error",
    "internal_error",
    "internal_server_error",
    "api_error",
    "overloaded_error",
    "server_is_overloaded",
    "service_unavailable",
    "slow_down",
    "timeout_error",
    "vector_store_timeout",
)
AUTH = (
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "billing_error",
    "unsupported_country_region_territory",
)
REQUEST = (
    "invalid_request_error",
    "invalid_prompt",
    "invalid_encrypted_content",
    "context_length_exceeded",
    "model_not_found",
    "not_found_error",
    "request_too_large",
    "data_residency_mismatch",
    "bio_policy",
    "misalignment_policy_violation",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "invalid_image_mode",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "image_file_too_large",
    "image_file_not_found",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
)
BY_VENDOR_CODE: Mapping[str, ModelErrorCode] = {
    **dict.fromkeys(RATE, "rate_limit"),
    **dict.fromkeys(SERVER, "server_error"),
    **dict.fromkeys(AUTH, "auth_error"),
    **dict.fromkeys(REQUEST, "invalid_request"),
}
"""The meaning of each known code; an unknown one in a reply means `bad_response`."""
